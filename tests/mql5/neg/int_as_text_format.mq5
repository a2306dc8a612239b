// run: %s got something that is no string
void OnStart()
  {
   PrintFormat("%s",5);
  }
