// translate: 'group' is a reserved word
void OnStart()
  {
   int group=1;
   Print(group);
  }
