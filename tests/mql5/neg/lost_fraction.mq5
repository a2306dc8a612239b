// compile: conversion
void OnStart()
  {
   double d=1.5;
   int    i=d;
   Print(i);
  }
